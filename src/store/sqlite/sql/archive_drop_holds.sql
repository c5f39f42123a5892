-- archive_drop_holds: no parameters
-- Of events that went: skipped or cancelled.
delete from ibid_delivery_hold
where state in ('SKIPPED', 'CANCELLED')
  and not exists (select 1 from ibid_event as e
    where e.tenant = ibid_delivery_hold.tenant and e.id = ibid_delivery_hold.event_id)
