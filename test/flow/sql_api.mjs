// SPDX-License-Identifier: Apache-2.0
// Pay under each of the keys in argv[3..], as any service in Node would, and print what came of it.
import pg from 'pg';

const client = new pg.Client({ connectionString: process.argv[2] });
await client.connect();
for (const key of process.argv.slice(3)) {
  await client.query('begin');
  try {
    const begun = await client.query(
      'select decision, command_id, status, body from ibid.command_begin(tenant => $1, client => $2, actor => $3, operation => $4, key => $5, payload => $6)',
      ['acme', 'web', 'u7', 'create-payment', key, '{"currency":"EUR","amount":12.5,"to":"B","from":"A"}']);
    const { decision, command_id: id } = begun.rows[0];
    if (decision === 'execute') {
      await client.query('savepoint work'); // to roll back to before a rejection
      await client.query('insert into payment values ($1, $2, $3, $4, 12.5, $5, null, now())', ['acme', id, 'A', 'B', 'EUR']);
      await client.query("select ibid.emit('payment', $1, 'PaymentCreated', '{\"amount\":12.5}')", [id]);
      await client.query('select ibid.command_complete($1, 201, $2)', [id, JSON.stringify({ id })]);
    }
    await client.query('commit');
    console.log(key, decision);
  } catch (error) {
    await client.query('rollback');
    console.log(key, error.code);
  }
}
await client.end();
