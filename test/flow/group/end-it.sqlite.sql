-- SQLite has no other way to say it; a plain COMMIT is refused when the script is read.
update hot set n = n + :amount where id = :row;
insert or rollback into hot (id, n) values (:row, 0);
select 200 as status;
