<?php
$root = rtrim('__ROOT__', '/');
file_put_contents("$root/uploads/x.txt", 'x');
file_put_contents("$root/made/x.php", '<?php');
fsockopen('127.0.0.1', __PORT__);
echo strlen(file_get_contents('/etc/passwd')) > 0, trim(shell_exec('echo ran'));
