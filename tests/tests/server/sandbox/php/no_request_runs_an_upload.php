<?php
mkdir($d = dirname(__FILE__) . '/uploads/sub');
file_put_contents("$d/index.php", '<?php echo 1;');
copy("$d/index.php", "$d/../e.php");
