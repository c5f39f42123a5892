-- quick_check: "ok", or the first thing that is wrong with the file.
pragma quick_check(1)
