<?php
if ($_SERVER['QUERY_STRING'] === 'ini') {
    echo ini_get('memory_limit'), ' ', ini_get('precision');
} else {
    echo $_SERVER[$_SERVER['QUERY_STRING']] ?? 'nothing';
}
