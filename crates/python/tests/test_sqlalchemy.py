"""SQLAlchemy over a database in the process."""

import datetime
import decimal
import uuid

import lstore
import pytest

sqlalchemy = pytest.importorskip("sqlalchemy")

from sqlalchemy import ForeignKey, Numeric, create_engine, inspect, select, text  # noqa: E402
from sqlalchemy.exc import IntegrityError  # noqa: E402
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, relationship  # noqa: E402


class Base(DeclarativeBase):
    pass


class Person(Base):
    __tablename__ = "people"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(unique=True)
    born: Mapped[datetime.date | None]
    token: Mapped[uuid.UUID] = mapped_column(default=lambda: uuid.UUID(int=7))
    orders: Mapped[list["Order"]] = relationship(back_populates="person", order_by="Order.id")


class Order(Base):
    __tablename__ = "orders"
    id: Mapped[int] = mapped_column(primary_key=True)
    person_id: Mapped[int] = mapped_column(ForeignKey("people.id"), index=True)
    total: Mapped[decimal.Decimal] = mapped_column(Numeric(10, 2))
    placed: Mapped[datetime.datetime | None]
    person: Mapped[Person] = relationship(back_populates="orders")


@pytest.fixture(params=["memory", "directory"])
def engine(request, tmp_path):
    url = "lstore://" if request.param == "memory" else f"lstore:///{tmp_path}/db"
    engine = create_engine(url)
    Base.metadata.create_all(engine)
    yield engine
    engine.dispose()


def test_objects_are_kept_and_found(engine):
    with Session(engine) as session:
        ada = Person(name="Ada", born=datetime.date(1815, 12, 10))
        ada.orders = [Order(total=decimal.Decimal("1.50")), Order(total=2, placed=datetime.datetime(2026, 1, 2, 3))]
        session.add_all([ada, Person(name="Grace")])
        session.commit()
        ada.orders[0].total += 1
        session.delete(ada.orders[1])
        session.commit()
    with Session(engine) as session:
        found = session.scalars(select(Person).join(Order).where(Order.total > 2)).one()
        assert (found.name, found.born, found.token) == ("Ada", datetime.date(1815, 12, 10), uuid.UUID(int=7))
        assert [order.total for order in found.orders] == [decimal.Decimal("2.50")]
        assert session.scalar(select(sqlalchemy.func.count()).select_from(Person)) == 2
        assert session.scalars(select(Person.name).where(Person.name.in_(["Grace", "Eve"]))).all() == ["Grace"]


def test_errors_are_those_of_sqlalchemy_and_roll_back(engine):
    with Session(engine) as session:
        session.add_all([Person(name="Ada"), Person(name="Ada")])
        with pytest.raises(IntegrityError) as raised:
            session.commit()
        assert isinstance(raised.value.orig, lstore.UniqueViolation)
        session.rollback()
        assert session.scalars(select(Person)).all() == []


def test_tables_are_reflected(engine):
    inspector = inspect(engine)
    assert sorted(inspector.get_table_names()) == ["orders", "people"]
    assert [column["name"] for column in inspector.get_columns("people")] == ["id", "name", "born", "token"]
    assert inspector.get_pk_constraint("orders")["constrained_columns"] == ["id"]
    assert inspector.get_foreign_keys("orders")[0]["referred_table"] == "people"
    assert [index["column_names"] for index in inspector.get_indexes("orders")] == [["person_id"]]
    assert inspector.get_unique_constraints("people")[0]["column_names"] == ["name"]


def test_isolation_levels_are_set_by_connection(engine):
    for level in ("SERIALIZABLE", "REPEATABLE READ", "READ COMMITTED"):
        with engine.connect().execution_options(isolation_level=level) as connection:
            assert connection.execute(text("SHOW transaction_isolation")).scalar() == level.lower()
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("INSERT INTO people (name, token) VALUES (:name, :token)"), {"name": "x", "token": uuid.UUID(int=1)})
    with engine.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM people")).scalar() == 1
