create table effect (n integer primary key, tenant text not null, key text not null, command_id text not null, reference text) strict;
create unique index effect_reference on effect (tenant, reference);
