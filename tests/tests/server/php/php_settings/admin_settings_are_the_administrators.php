<?php
echo json_encode([ini_get('precision'), ini_set('precision', 9), ini_get('precision'), ini_get('max_execution_time'),
    set_time_limit(1), ini_set('memory_limit', '51M'), ini_get('memory_limit'), (string) (1 / 3),
    ini_get_all(null, true)['precision']['access'], @file_exists('/etc/passwd')]);
ini_restore('precision');
ini_restore('memory_limit');
