<?php
header('Content-Type: application/pdf');
echo str_repeat('0123456789', 10000);
fastcgi_finish_request();
posix_kill(getmypid(), 9);
sleep(5);
