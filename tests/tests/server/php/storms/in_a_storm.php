<?php
file_put_contents(dirname(__DIR__) . '/marks/posts', $_GET['id'] . "\n", FILE_APPEND | LOCK_EX);
usleep(500);
echo $_GET['id'];
