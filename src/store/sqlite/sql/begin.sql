-- begin: takes the writer lock of the file at once, so that nothing fails halfway for want of it.
begin immediate
