-- pause_end: $1 tenant, $2 kind, $3 name
-- It fails the transaction when it is not paused.
with ended as (
	delete from ibid.pause where tenant = $1 and kind = $2 and name = $3
	returning 1)
select ibid.demand(exists (select from ended), 'IB006', 'it is not paused')
