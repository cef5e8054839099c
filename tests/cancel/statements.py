"""Statements that take long in every way known: to read, to plan, to compute, to write, or that wait.

A statement is a text, or a text with its parameters, which are then sent apart from it.
"""


def joined(separator, item, count):
    return separator.join(item(at) for at in range(count))


def nested(opening, inner, closing, depth):
    return f"SELECT {opening * depth}{inner}{closing * depth} FROM big WHERE id = 1"


def read_and_planned():
    """What is large as a text."""
    yield "sum of 1,900 terms", "SELECT 1" + " + 1" * 1_900
    yield "sum of 1,900 columns", "SELECT " + joined(" + ", lambda at: "id", 1_900) + " FROM big WHERE id = 1"
    yield "concatenation of 1,900", "SELECT 'a'" + " || 'a'" * 1_900
    rows = joined(", ", lambda at: f"({at}, 'a{at}', {at}.5)", 60_000)
    yield "60,000 rows of VALUES", f"VALUES {rows}"
    yield "60,000 rows of VALUES in FROM", f"SELECT count(*), sum(a) FROM (VALUES {rows}) v(a, b, c) JOIN big ON id = a"
    yield "INSERT of 60,000 rows", f"INSERT INTO target VALUES {rows}"
    computed = joined(", ", lambda at: f"({at} + 1, 'a' || {at}, abs({at}.5))", 20_000)
    yield "INSERT of 20,000 computed rows", f"INSERT INTO target VALUES {computed}"
    marks = joined(", ", lambda at: "(%s)", 60_000)
    yield "60,000 parameters in VALUES", f"VALUES {marks}", [str(at) for at in range(60_000)]
    yield "60,000 parameters in INSERT", f"INSERT INTO target (id) VALUES {marks}", list(range(60_000))
    marks = joined(", ", lambda at: "%s", 60_000)
    yield "60,000 parameters in IN", f"SELECT count(*) FROM big WHERE id IN ({marks})", list(range(60_000))
    yield "5,000 ORs", "SELECT count(*) FROM big WHERE " + joined(" OR ", lambda at: f"id = {at} * 2", 5_000)
    yield "5,000 ORs of two columns", "SELECT count(*) FROM big WHERE " + joined(
        " OR ", lambda at: f"(id = {at} AND a > {at})", 5_000
    )
    yield "5,000 ANDs", "SELECT count(*) FROM big WHERE " + joined(" AND ", lambda at: f"id <> {at}", 5_000)
    numbers = joined(", ", str, 20_000)
    yield "IN of 20,000", f"SELECT count(*) FROM big WHERE id IN ({numbers})"
    yield "NOT IN of 20,000 texts", "SELECT count(*) FROM big WHERE s NOT IN (%s)" % joined(
        ", ", lambda at: f"'x{at}'", 20_000
    )
    yield "IN of 20,000 sums", "SELECT count(*) FROM big WHERE id IN (%s)" % joined(
        ", ", lambda at: f"a + {at}", 20_000
    )
    yield "2,000 UNION ALLs", joined(" UNION ALL ", lambda at: f"SELECT {at}", 2_000)
    yield "2,000 UNIONs", joined(" UNION ", lambda at: f"SELECT {at}", 2_000)
    yield "1,000 UNION ALLs of a table", joined(" UNION ALL ", lambda at: f"SELECT id FROM big WHERE a = {at}", 1_000)
    for name, opening, inner, closing in [
        ("parentheses", "(", "id", ")"),
        ("calls", "abs(", "id", ")"),
        ("calls of two", "coalesce(NULL, ", "id", ")"),
        ("CASE", "CASE WHEN a > 1 THEN ", "id", " END"),
        ("queries", "(SELECT ", "id", ")"),
        ("arrays", "ARRAY[", "id", "]"),
        ("casts", "cast(", "id", " AS bigint)"),
        ("sums", "(1 + ", "id", ")"),
    ]:
        yield f"190 {name} within each other", nested(opening, inner, closing, 190)
    yield "60 correlated queries within each other", "SELECT id FROM big b0 WHERE " + joined(
        "", lambda at: f"EXISTS (SELECT 1 FROM big b{at + 1} WHERE b{at + 1}.id = b{at}.a AND ", 60
    ) + "true" + ")" * 60
    yield "190 subqueries in FROM", "SELECT * FROM " + "(SELECT * FROM " * 190 + "big" + joined(
        "", lambda at: f") q{at}", 190
    ) + " LIMIT 1"
    yield "ARRAY of 20,000", f"SELECT ARRAY[{numbers}]"
    yield "CASE of 2,000", "SELECT CASE id " + joined("", lambda at: f" WHEN {at} THEN {at} * 2", 2_000) + " END FROM big"
    yield "CASE of 20,000", "SELECT CASE id " + joined("", lambda at: f" WHEN {at} THEN {at} * 2", 20_000) + " END FROM big"
    yield "500 CTEs", "WITH c0 AS (SELECT 0 AS a), " + joined(
        ", ", lambda at: f"c{at + 1} AS (SELECT a + 1 AS a FROM c{at})", 499
    ) + " SELECT * FROM c499"
    yield "500 CTEs beside each other", "WITH " + joined(
        ", ", lambda at: f"c{at} AS (SELECT id FROM big WHERE a = {at})", 500
    ) + " SELECT count(*) FROM " + joined(" NATURAL JOIN ", lambda at: f"c{at}", 40)
    yield "cross join of 400", "SELECT count(*) FROM " + joined(", ", lambda at: f"(SELECT {at}) t{at}", 400)
    yield "join of 100", "SELECT count(*) FROM big t0 " + joined(
        " ", lambda at: f"JOIN big t{at + 1} ON t{at}.id = t{at + 1}.a", 100
    )
    yield "join of 300", "SELECT count(*) FROM big t0 " + joined(
        " ", lambda at: f"JOIN big t{at + 1} ON t0.id = t{at + 1}.id", 300
    )
    yield "join of 60 by WHERE", "SELECT count(*) FROM " + joined(
        ", ", lambda at: f"big t{at}", 60
    ) + " WHERE " + joined(" AND ", lambda at: f"t{at}.id = t{at + 1}.a", 59)
    yield "select list of 1,600", "SELECT " + joined(", ", lambda at: f"a + {at} AS x{at}", 1_600) + " FROM big"
    yield "1,600 aggregates", "SELECT " + joined(", ", lambda at: f"sum(a + {at})", 1_600) + " FROM big"
    yield "200 windows", "SELECT " + joined(
        ", ", lambda at: f"sum(a) OVER (PARTITION BY id % {at + 1} ORDER BY s)", 200
    ) + " FROM big"
    yield "GROUP BY CUBE of 12", "SELECT count(*) FROM big GROUP BY CUBE (%s)" % joined(
        ", ", lambda at: f"(id + {at})", 12
    )
    yield "GROUP BY of 1,000", "SELECT count(*) FROM big GROUP BY " + joined(", ", lambda at: f"a + {at}", 1_000)
    yield "200 inner queries", "SELECT " + joined(
        ", ", lambda at: f"(SELECT max(id) FROM big y WHERE y.a = x.a + {at}) AS q{at}", 200
    ) + " FROM big x"
    yield "text of 8 MB", "SELECT length('" + "x" * (8 << 20) + "'), count(*) FROM big x, big y, big z"
    yield "comment of 8 MB", "SELECT count(*) /*" + " x" * (4 << 20) + "*/ FROM big x, big y, big z"


def computed():
    """What is short and computes for long."""
    many = "generate_series(1, 1000000000) g(n)"
    yield "sum of 10^9", f"SELECT sum(n) FROM {many}"
    yield "groups of 10^9", f"SELECT n % 1000, count(*) FROM {many} GROUP BY 1"
    yield "10^9 groups", f"SELECT count(*) FROM (SELECT n FROM {many} GROUP BY n) x"
    yield "sorting 10^9", f"SELECT n FROM {many} ORDER BY -n"
    yield "top of 10^9", f"SELECT n FROM {many} ORDER BY n % 1000007 LIMIT 5"
    yield "distinct of 10^9", f"SELECT DISTINCT n * 3 FROM {many}"
    yield "join of 10^9", f"SELECT count(*) FROM {many} JOIN {many.replace('g(n)', 'h(m)')} ON n = m"
    yield "cross join of a table", "SELECT count(*) FROM big x, big y, big z WHERE x.a + y.a + z.a = -1"
    yield "join that fits nothing", "SELECT count(*) FROM big x JOIN big y ON x.a < y.a AND x.id * y.id = -1"
    yield "window over 10^9", f"SELECT max(s) FROM (SELECT sum(n) OVER (ORDER BY n) s FROM {many}) x"
    yield "window with frames", "SELECT sum(m) FROM (SELECT max(a) OVER (ORDER BY id ROWS BETWEEN 100000 PRECEDING " \
        "AND CURRENT ROW EXCLUDE CURRENT ROW) m FROM big) x"
    yield "string_agg of 10^9", f"SELECT length(string_agg(n::text, ',')) FROM {many}"
    yield "array_agg of 10^9", f"SELECT cardinality(array_agg(n)) FROM {many}"
    yield "string_agg, ordered", f"SELECT length(string_agg(n::text, ',' ORDER BY n DESC)) FROM {many}"
    yield "recursion", "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT count(*) FROM r"
    yield "recursion, wide", "WITH RECURSIVE r(n) AS (SELECT id FROM big UNION SELECT n + 1 FROM r) SELECT count(*) FROM r"
    yield "backtracking", "SELECT count(*) FROM big WHERE repeat('a', 5000) || id::text ~ '^(a+)+(\\w+)\\2$'"
    yield "pattern of texts", "SELECT count(*) FROM big x, big y WHERE repeat(x.s, 50) LIKE '%' || y.s || '%z%'"
    yield "replacing", "SELECT sum(length(regexp_replace(repeat(s, 2000), '(a|b)*c', 'x', 'g'))) FROM big"
    yield "correlated query", "SELECT sum((SELECT count(*) FROM big y WHERE y.a < x.a AND y.s <> x.s)) FROM big x"
    yield "correlated EXISTS", "SELECT count(*) FROM big x WHERE NOT EXISTS (SELECT 1 FROM big y WHERE y.a * 2 = x.a * 3 + 1000000)"
    yield "lateral", "SELECT count(*) FROM big x, LATERAL (SELECT y.id FROM big y WHERE y.a > x.a ORDER BY y.s LIMIT 3) z"
    yield "long text", "SELECT length(repeat(repeat('x', 1000000), 1000))"
    yield "many long texts", f"SELECT max(length(md5(repeat('x', 1000000 + n::int % 7)))) FROM {many}"
    yield "percentile", f"SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY n) FROM {many}"
    yield "factors of numerics", "SELECT sum(power(1.0000001 + n % 7, 30.5)) FROM generate_series(1, 100000000) g(n)"
    yield "set operations of 10^9", f"SELECT n FROM {many} EXCEPT SELECT n FROM {many}"
    yield "rows of 10^9 to the client", f"SELECT n FROM {many}"
    yield "in the select list", "SELECT count(*) FROM (SELECT generate_series(1, 1000000000)) x"
    yield "IN of a query", "SELECT count(*) FROM big WHERE id NOT IN (SELECT n FROM generate_series(1, 1000000000) g(n))"
    yield "catalog, crossed", "SELECT count(*) FROM pg_attribute a, pg_attribute b, pg_attribute c, pg_attribute d"
    yield "EXPLAIN ANALYZE", "EXPLAIN ANALYZE SELECT count(*) FROM big x, big y, big z WHERE x.a + y.a + z.a = -1"


def written():
    """What writes."""
    yield "UPDATE of a large table", "UPDATE big SET a = a + 1"
    yield "UPDATE of a key", "UPDATE big SET id = id + 10000000"
    yield "UPDATE by a join", "UPDATE big SET a = y.a FROM big y WHERE big.id = y.a"
    yield "DELETE of a large table", "DELETE FROM big"
    yield "DELETE by a query", "DELETE FROM big WHERE a NOT IN (SELECT y.a FROM big y WHERE y.id > big.id)"
    yield "INSERT of a query", "INSERT INTO target SELECT n, 'x', 1.5 FROM generate_series(1, 100000000) g(n)"
    yield "CREATE TABLE AS", "CREATE TABLE made AS SELECT n, n::text AS t FROM generate_series(1, 100000000) g(n)"
    yield "CREATE INDEX", "CREATE INDEX made ON big (s, a)"
    yield "CREATE UNIQUE INDEX", "CREATE UNIQUE INDEX made ON big (lower(s), id)"
    yield "ALTER TABLE", "ALTER TABLE big ADD UNIQUE (id, a, s)"
    yield "COPY TO", "COPY (SELECT n FROM generate_series(1, 1000000000) g(n)) TO STDOUT"
    yield "FOR UPDATE", "SELECT * FROM big FOR UPDATE"


def waiting():
    """What waits."""
    yield "pg_sleep", "SELECT pg_sleep(100)"
    yield "pg_sleep in a query", "SELECT count(pg_sleep(0.01)) FROM big"
