<?php
$root = dirname(__DIR__) . '/root';
$f = __FILE__;
$evil = '<?php echo "EVIL";';
file_put_contents("$root/uploads/e.php", $evil);
