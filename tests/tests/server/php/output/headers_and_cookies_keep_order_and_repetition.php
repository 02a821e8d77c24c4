<?php
header('X-One: 1');
header('X-One: 2');
header('X-Two: a', false);
header('X-Two: b', false);
header('X-Gone: x');
header_remove('X-Gone');
header('x-lower: MiXed');
header('X-Empty:');
header('Content-Type: text/plain; charset=utf-8');
setcookie('first', 'a b');
setcookie('second', 'v', ['expires' => 2000000000, 'path' => '/p', 'secure' => true,
    'httponly' => true, 'samesite' => 'Lax']);
echo 'x';
