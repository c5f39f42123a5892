-- group_release: the member's work stays.
release member
