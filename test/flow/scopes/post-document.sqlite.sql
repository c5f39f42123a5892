select 201 as status, 'journal' as resource_type,
  ibid_post(:source_system || ' ' || :document_type || ' ' || :document || ' ' || :purpose, json_array(
    json_object('account', 'receivables', 'direction', 'DEBIT', 'amount', :amount, 'currency', 'EUR'),
    json_object('account', 'revenue', 'direction', 'CREDIT', 'amount', :amount, 'currency', 'EUR'))) as resource_id;
