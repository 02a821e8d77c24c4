<?php
$wgServer = 'http://localhost';
$wgCacheDirectory = '@CACHE@';
$wgSessionCacheType = CACHE_DB;
$wgJobRunRate = 0;
$wgSecretKey = $wgUpgradeKey = str_repeat('k', 64);
