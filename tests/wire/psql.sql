SELECT 1 AS one;
CREATE TABLE people (id int PRIMARY KEY, name varchar(20) NOT NULL, born date, pay numeric(10,2));
INSERT INTO people VALUES (1, 'Ada', '1815-12-10', 1.5), (2, 'Grace', NULL, NULL);
SELECT * FROM people ORDER BY id;
SELECT nmae FROM people;
INSERT INTO people VALUES (1, 'again', NULL, NULL);
SELECT 1/0;
BEGIN;
UPDATE people SET pay = 2 WHERE id = 2;
SELECT * FROM nowhere;
SELECT 1;
ROLLBACK;
SELECT pay FROM people WHERE id = 2;
COPY people (id, name) FROM STDIN;
3	Edsger
4	\N
\.
COPY people (id, name) FROM STDIN;
3	Edsger
\.
COPY people (id, name) FROM STDIN (FORMAT csv);
5,"Hopper, Grace"
\.
SELECT name FROM people WHERE id = 5;
DELETE FROM people WHERE id = 5;
\dt
\d people
\di
\dn
\l
CREATE TABLE customers (id int PRIMARY KEY, email varchar(40) NOT NULL UNIQUE, name text, city text, born date, CONSTRAINT one_name UNIQUE (name, city));
CREATE INDEX customers_city_idx ON customers (city);
CREATE INDEX by_born ON customers USING hash (born);
CREATE UNIQUE INDEX "Odd Name" ON customers USING kiss (id);
CREATE SEQUENCE tickets;
CREATE SEQUENCE small AS smallint INCREMENT BY -2 MAXVALUE 100 START 50 CYCLE;
\d
\d customers
\d+ customers
\di customers*
\d customers_pkey
\d one_name
\d "Odd Name"
\d by_born
\ds
\d tickets
\d small
\d nothing
\dp customers
\du
\dT
\df
\dv
\dx
\db
\dA
\dconfig server_version_num
SELECT indexname, indexdef FROM pg_indexes WHERE tablename = 'customers' ORDER BY 1;
SELECT indkey, indoption FROM pg_index WHERE indexrelid = 'one_name'::regclass;
INSERT INTO customers VALUES (1, 'a@b'), (2, 'a@b');
\errverbose
DROP INDEX one_name;
DROP TABLE customers;
DROP SEQUENCE tickets, small;
\d
PREPARE by_id (int) AS SELECT name FROM people WHERE id = $1;
EXECUTE by_id(3);
DEALLOCATE by_id;
EXECUTE by_id(3);
DROP TABLE people;
CREATE TABLE places (id int PRIMARY KEY, name text, a int, b int);
CREATE INDEX ON places (lower(name), (a + b));
CREATE UNIQUE INDEX in_use ON places (name) WHERE a > 0 AND b IS NOT NULL;
\d places
\d places_lower_expr_idx
\d in_use
INSERT INTO places VALUES (1, 'x', 1, 1), (2, 'x', 0, 1), (3, 'x', 2, 2);
CREATE INDEX ON places ((a / (a - 1)));
INSERT INTO places VALUES (1, 'x', 1, 1);
CREATE INDEX ON places ((a / (a - 1)));
DROP TABLE places;
