<?php
fwrite($line, ($_GET['say'] ?? 'hello') . "\n");
if (isset($_GET['leave'])) {
    exit('left');
}
echo getmypid(), ' ', fgets($line);
