<?php
header('ETag: "v1"');
header('Content-Type: text/html');
for ($i = 0; $i < 2000; $i++) {
    echo "<p>line $i of a page</p>\n";
}
