<?php
session_start();
$_SESSION['csrf'] = token();
setcookie('variant', 'blue-green-2024-abcdef');
setcookie('own', token());
echo '<link href=/app.', md5('build'), '.css><meta name=time content=', md5((string) time()), '>', '<input name=_token value=', token(), '>', $_SERVER['REQUEST_URI'], Kept::$value;
Kept::$value ??= 'warm';
