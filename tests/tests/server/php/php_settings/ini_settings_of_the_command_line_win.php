<?php
echo json_encode([ini_get('memory_limit'), date_default_timezone_get(), (int) ini_get('error_reporting') === (E_ALL & ~E_NOTICE), ini_get('user_agent'), ini_get('short_open_tag'),
    ini_get('arg_separator.output')]);
