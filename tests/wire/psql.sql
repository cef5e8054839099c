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
\dt
\d people
\di
\dn
\l
PREPARE by_id (int) AS SELECT name FROM people WHERE id = $1;
EXECUTE by_id(3);
DEALLOCATE by_id;
EXECUTE by_id(3);
DROP TABLE people;
