<?php
$d = dirname(__DIR__) . '/root/uploads';
$evil = '<?php echo "EV" . "IL";';
file_put_contents("$d/e.php", $evil);
file_put_contents("$d/e.txt", $evil);
file_put_contents("$d/e.gz", gzencode($evil));
copy(dirname($d) . '/archive.phar', "$d/e.jpg");
file_put_contents("$d/e.ini", 'a = 1');
file_put_contents(sys_get_temp_dir() . '/e.php', $evil);
