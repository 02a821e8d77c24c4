<?php
@mkdir(__DIR__ . '/../many');
for ($i = 0; $i < 1500; $i++) {
    touch(__DIR__ . "/../many/a name of some length $i");
}
$dir = opendir(__DIR__ . '/../many');
