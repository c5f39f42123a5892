select ibid_emit('notification', :case, 'NotificationRequested', json_object('purpose', :purpose), null, :case || ' ' || :purpose);
select 202 as status;
