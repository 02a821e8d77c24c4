<?php
$key = ftok(__FILE__, 'h') ^ getmypid();
$sem = sem_get($key, 1);
$other = random_int(1, PHP_INT_MAX >> 33);
