-- commit: no parameters
commit
