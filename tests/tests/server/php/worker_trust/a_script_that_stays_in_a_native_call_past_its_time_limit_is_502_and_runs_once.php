<?php
require 'gate.php';
mark('tries');
set_time_limit(1);
hash_pbkdf2('sha512', 'a', 'b', 2000000000, 64);
echo 'never';
