<?php
if (!isset($_GET['go'])) {
    require_once 'gate.php';
    gate('status_pages');
}
echo 'done';
