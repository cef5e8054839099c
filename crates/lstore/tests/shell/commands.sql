-- How rows look, variables, branches and what is sent, beside psql.
SELECT 1 AS a, NULL AS b, 'x' AS c, E'one\ntwo' AS d, 1.50 AS "日本", true AS t;
\x
SELECT 1 AS a, NULL AS b, E'one\ntwo' AS d UNION ALL SELECT 22, 'x', 'long enough for more' ORDER BY a;
SELECT 1 AS a WHERE false;
\x off
SELECT 1 AS a WHERE false;
SELECT;
\pset null '<null>'
SELECT 1 AS a, NULL AS b;
\pset null ''
\a
SELECT 1 AS a, NULL AS b UNION ALL SELECT 2, 'x' ORDER BY a;
\f ;
SELECT 1 AS a, NULL AS b UNION ALL SELECT 2, 'x' ORDER BY a;
\x \\ SELECT 1 AS a, 2 AS b; \x
\a
\t
SELECT 1 AS a, 'x' AS b;
\t
\pset border 2
SELECT 1 AS a, 'x' AS b, E'y\nz' AS "c
d";
\pset border 0
SELECT 1 AS a, 'x' AS b, E'y\nz' AS c;
\x
SELECT 1 AS a, 'x' AS b, E'y\nz' AS c;
\pset border 2
SELECT 1 AS a, 'x' AS b, E'y\nz' AS c;
\x
\pset linestyle unicode
SELECT 1 AS a, 'x' AS b;
\pset linestyle ascii
\pset border 1
\pset footer off
SELECT 1 AS a;
\pset footer on
\C 'A title'
SELECT 1 AS a;
\C
\H
SELECT 1 AS a, '<&>' AS b;
\H
SELECT 1 AS one, 'it''s' AS two \gset my_
\echo :my_one :'my_two' :"my_two" :{?my_one} :{?nosuch} :nosuch
SELECT 1 WHERE false \gset
SELECT 1 UNION ALL SELECT 2 \gset
\set n 5
\set list 1 2 ' 3'
\echo :n :list
SELECT :n + 1 AS six, ':n' AS text, :'n'::int AS five, 1::int AS one;
\unset n
\echo :n
\set ON_ERROR_STOP maybe
SELECT 'CREATE TABLE g' || i || ' (x int)' FROM generate_series(1, 2) i \gexec
SELECT 'SELECT nosuch' UNION ALL SELECT 'SELECT 1 AS still' ORDER BY 1 \gexec
SELECT 1 AS a, 'x'::text AS b, 1.5::numeric(5,2) AS c, 'y'::varchar(7) AS d \gdesc
SELECT 1 AS a \gx
SELECT 1 AS a
\g
\p
\g (format=csv tuples_only=on)
\r
\p
SELECT 1 AS a\; SELECT 2 AS b;
SELECT * FROM (VALUES ('r1', 'c2', 1), ('r1', 'c1', 2), ('r2', 'c1', 3)) v (a, b, c) \crosstabview
SELECT 1 AS a \crosstabview
\if true
\echo yes
\if 0
\echo no
SELECT nosuch;
\elif yes
\echo inner
\else
\echo no
\endif
\else
\echo no
\endif
\endif
\echo -n a
\echo '' 'b  c'
\qecho d
SELECT nosuch FROM g1;
\echo :ERROR :SQLSTATE :LAST_ERROR_MESSAGE
SELECT 1 / 0;
\set VERBOSITY terse
SELECT nosuch FROM g1;
\set VERBOSITY sqlstate
SELECT nosuch FROM g1;
\set VERBOSITY default
INSERT INTO g1 VALUES (1), (2);
\echo :ROW_COUNT
BEGIN;
SELECT 1 / 0;
SELECT 1;
COMMIT;
\set ON_ERROR_ROLLBACK on
BEGIN;
INSERT INTO g1 VALUES (3);
SELECT 1 / 0;
COMMIT;
\set ON_ERROR_ROLLBACK off
SELECT count(*) FROM g1;
\set AUTOCOMMIT off
DELETE FROM g1;
ROLLBACK;
\set AUTOCOMMIT on
SELECT count(*) FROM g1;
\set QUIET on
CREATE TABLE quiet (x int);
\pset null x
\set QUIET off
\pset null ''
COPY g1 FROM STDIN;
4
5
\.
COPY g1 TO STDOUT;
COPY g1 FROM STDIN (FORMAT csv, HEADER);
x
"6"
\.
\copy g1 from stdin csv
7
\.
\copy (select max(x) from g1) to stdout
DROP TABLE IF EXISTS nothing;
SELECT 'unfinished
text' AS s, "x" FROM g1 WHERE x = 1 -- ; no
;
/* a comment; */ SELECT $$it's; \d$$ AS s;
SELECT 3 AS last
;
\if maybe
SELECT 'not';
\endif
\pset tuples_only on
\pset tuples_only off
\pset format wrapped
\pset columns 40
SELECT 1 AS id, repeat('abcdefghij', 6) AS long, 'some more words here' AS more, NULL AS nothing;
SELECT repeat('日本', 20) AS wide, E'one line\nand another one that is longer than it' AS lines;
SELECT repeat('x', 50) AS last;
SELECT repeat('x', 10) || i AS a, repeat('y', 30) AS b FROM generate_series(1, 2) i;
SELECT 1 AS "a name that is as wide as forty signs are, or more", 2 AS b;
\pset border 2
SELECT repeat('x', 50) AS a, 1 AS b;
\pset linestyle unicode
SELECT repeat('x', 50) AS a, 1 AS b;
\pset border 0
SELECT repeat('x', 50) AS a, 1 AS b;
\pset border 1
\pset linestyle ascii
\x auto
SELECT repeat('x', 50) AS a, 1 AS b;
\pset format aligned
SELECT repeat('x', 50) AS a, 1 AS b;
SELECT 'x' AS a;
\x off
