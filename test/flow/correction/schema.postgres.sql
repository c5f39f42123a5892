create table payment (tenant text not null, id uuid not null, amount numeric not null);
