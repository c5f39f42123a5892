create table effect (n bigint generated always as identity primary key, tenant text not null, key text not null, command_id text not null, reference text);
create unique index effect_reference on effect (tenant, reference);
