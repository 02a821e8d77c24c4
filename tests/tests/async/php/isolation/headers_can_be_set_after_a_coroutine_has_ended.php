<?php
Howdah\await(Howdah\go(fn () => usleep(500)));
meet('a');
header("X-After: $m");
echo headers_sent() ? 'sent' : implode(preg_grep('/X-After/', headers_list()));
