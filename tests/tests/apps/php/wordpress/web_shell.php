<?php
error_reporting(0);
echo json_encode([file_get_contents('/etc/passwd'), exec('id'), (bool) fsockopen('127.0.0.1', __PORT__, $e, $s, 2),
    file_put_contents('__ROOT__/wp-content/plugins/left.php', '<?php'), file_put_contents('__ROOT__/left.php', '<?php'),
    (include '__ROOT__/wp-content/uploads/shell.php'), file_put_contents('__ROOT__/wp-content/uploads/left.txt', 'x')]);
