<?php
echo json_encode([php_ini_loaded_file(), count(explode(',', php_ini_scanned_files())) > 5, extension_loaded('mbstring'), extension_loaded('curl'), PHP_SAPI !== '']);
