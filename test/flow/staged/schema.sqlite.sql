create table charge (command_id text not null, state text not null) strict;
