<?php
for ($i = 0; $i < (int) $_GET['n']; $i++) {
    header($_GET['k'] . ($_GET['k'] === 'X' ? "-$i" : '') . ': v', false);
}
echo 'end';
