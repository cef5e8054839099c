"""SQLAlchemy's own suite for dialects, over a database in a new directory.

It takes minutes and some of it can't pass (docs/python.md), so that `./test` leaves it out. By hand, in this folder, with the package
and SQLAlchemy installed:  `python -m pytest`. The database is the one that `setup.cfg` names; it has to be new.
"""

import configparser
import pathlib
import sys

import lstore
import pytest
from sqlalchemy.dialects import registry
from sqlalchemy.engine import make_url

sys.path.insert(0, str(pathlib.Path(__file__).parent))
registry.register("lstore", "lstore.sqlalchemy", "LstoreDialect")
registry.register("lstore.lstore", "lstore.sqlalchemy", "LstoreDialect")
pytest.register_assert_rewrite("sqlalchemy.testing.assertions")

import sqlalchemy.dialects.postgresql.provision  # noqa: E402, F401
from sqlalchemy.testing.plugin.pytestplugin import *  # noqa: E402, F403
from sqlalchemy.testing.provision import set_default_schema_on_connection, temp_table_keyword_args, upsert  # noqa: E402

_settings = configparser.ConfigParser()
_settings.read(pathlib.Path(__file__).with_name("setup.cfg"))
_DEFAULT = _settings["db"]["default"]

for hook in (set_default_schema_on_connection, temp_table_keyword_args, upsert):
    hook.fns["lstore"] = hook.fns["postgresql"]


def pytest_sessionstart(session):
    """The suite expects these schemas."""
    for url in session.config.getoption("dburi") or [_DEFAULT]:
        with lstore.connect(make_url(url).database, autocommit=True) as con:
            con.execute("CREATE SCHEMA IF NOT EXISTS test_schema; CREATE SCHEMA IF NOT EXISTS test_schema_2")
    from sqlalchemy.testing.plugin import pytestplugin

    pytestplugin.pytest_sessionstart(session)
