<?php
$db = __CONNECT__;
__BOOT__;
$db = null;
$db = __AGAIN__;
sql("SET TimeZone = 'Europe/Vienna'");
sql('SET statement_timeout = 60000');
