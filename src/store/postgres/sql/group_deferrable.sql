-- group_deferrable: no parameters
-- Fails if a check could be put off to the end of the transaction. Asked when the group has used its tables: from then
-- on they can't get a constraint that could.
select ibid.demand(not exists (select from pg_constraint
	where condeferrable and connamespace <> 'ibid'::regnamespace), 'IB018', 'ibid: a constraint can be put off')
