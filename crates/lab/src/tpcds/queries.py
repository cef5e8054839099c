"""Writes the queries of TPC-DS that DuckDB's extension has, as a JSON list of their texts, to standard output."""
import json
import os

import duckdb
import duckdb_extension_tpcds

package = os.path.dirname(duckdb_extension_tpcds.__file__)
path = os.path.join(package, "extensions", "v" + duckdb.__version__, "tpcds.duckdb_extension").replace("'", "''")
connection = duckdb.connect()
connection.execute(f"LOAD '{path}'")
found = connection.execute("SELECT query FROM tpcds_queries() ORDER BY query_nr").fetchall()
print(json.dumps([text for text, in found]))
