select 201 as status, 'journal' as resource_type,
  ibid.post(:source_system || ' ' || :document_type || ' ' || :document || ' ' || :purpose, jsonb_build_array(
    jsonb_build_object('account', 'receivables', 'direction', 'DEBIT', 'amount', :amount, 'currency', 'EUR'),
    jsonb_build_object('account', 'revenue', 'direction', 'CREDIT', 'amount', :amount, 'currency', 'EUR'))) as resource_id;
