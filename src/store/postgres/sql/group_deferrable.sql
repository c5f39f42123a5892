-- group_deferrable: no parameters
-- Could a check be put off to the end of the transaction? Asked when the group has used its tables:
-- from then on they can't get a constraint that could.
select exists (select from pg_constraint
	where condeferrable and connamespace <> 'ibid'::regnamespace)
