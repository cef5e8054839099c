-- The commands that list and describe, beside what psql writes of PostgreSQL.
CREATE TABLE owners (id int PRIMARY KEY, name varchar(20) NOT NULL DEFAULT 'x' CHECK (name <> ''), email text UNIQUE, pay numeric(10,2), boss int REFERENCES owners ON DELETE CASCADE);
CREATE INDEX ON owners (lower(name), pay DESC) WHERE pay > 0;
CREATE TABLE pets (id bigint GENERATED ALWAYS AS IDENTITY, tag serial, n int GENERATED ALWAYS AS (1 + 2) STORED, owner int REFERENCES owners DEFERRABLE INITIALLY DEFERRED, CONSTRAINT one_tag UNIQUE (tag) DEFERRABLE);
COMMENT ON TABLE owners IS 'who owns';
COMMENT ON COLUMN owners.name IS 'a name';
CREATE VIEW rich AS SELECT id FROM owners WHERE pay > 10;
CREATE MATERIALIZED VIEW counted AS SELECT count(*) AS n FROM owners;
CREATE SEQUENCE tickets AS smallint INCREMENT BY 2 MAXVALUE 100 CYCLE;
CREATE TYPE mood AS ENUM ('sad', 'it''s fine');
CREATE DOMAIN positive AS int DEFAULT 1 NOT NULL CHECK (VALUE > 0);
CREATE FUNCTION twice(a int, b int DEFAULT 2) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT a * b';
CREATE SCHEMA other;
CREATE TABLE other.owners (x int);
CREATE TABLE other."Odd Name" (x int);
\d
\dt
\d owners
\d pets
\d rich
\d counted
\d tickets
\d pets_id_seq
\d pets_tag_seq
\d owners_pkey
\d owners_lower_pay_idx
\d one_tag
\d owners*
\di
\ds
\dv
\dm
\dE
\dtv
\di owners*
\dt nothing
\dt noth*
\d nothing
\d a.b.c.d
\dn
\dn o*
\df
\df tw*
\dT
\dT+ mood
\dT moo*
\dD
\dD+ pos*
\du lstore
\dp owners
\z rich
\sf twice
\sf+ twice
SET search_path = other, public;
\d
\d owners
\d "Odd Name"
\d public.owners
\dt *.owners
\dt other.*
\dt "Odd*"
\dT public.mood
\x
\dt other.*
\x
\t
\dt other.*
\t
\a
\dt other.*
\d other.owners
\a
