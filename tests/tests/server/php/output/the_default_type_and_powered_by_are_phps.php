<?php
header_remove('X-Powered-By');
ini_set('default_charset', '');
ini_set('default_mimetype', 'text/x-own');
echo 'x';
