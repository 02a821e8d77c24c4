<?php
header('Content-Type: text/event-stream');
while (ob_get_level()) {
    ob_end_flush();
}
for ($i = 0; $i < 3; $i++) {
    echo "data: {$_GET['m']} $i\n\n";
    flush();
}
