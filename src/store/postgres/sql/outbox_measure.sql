-- outbox_measure: $1 how many lanes there are, $2 so many events behind each cursor are looked at one by one
select destination, written, delivered, backlog, held, failed, parked,
	case when oldest is not null
		then greatest(ibid_internal.microseconds(clock_timestamp()) - ibid_internal.microseconds(oldest), 0) else 0 end as oldest,
	leased, instant(moved_at)
from ibid_internal.measure_outbox($1, $2)
