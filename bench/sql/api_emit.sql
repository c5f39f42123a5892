-- api_emit: $1 payment's id, $2 event's payload
select ibid.emit('payment', $1, 'PaymentCreated', $2::text)
