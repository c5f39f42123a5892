select ibid.emit('notification', :case, 'NotificationRequested', jsonb_build_object('purpose', :purpose), null, :case || ' ' || :purpose);
select 202 as status;
