<?php
echo "boot line one\nboot line two\n";
header('X-Boot: 1');
$handle = function () {
    echo 'answer';
};
