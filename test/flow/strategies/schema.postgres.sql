create table flag (tenant text not null, name text not null, value text not null, primary key (tenant, name));
create table projection (
  tenant text not null, case_id text not null, version bigint not null, status text not null, primary key (tenant, case_id));
create table tag (tenant text not null, case_id text not null, tag text not null, primary key (tenant, case_id, tag));
create table counter (tenant text not null, name text not null, value bigint not null, primary key (tenant, name));
